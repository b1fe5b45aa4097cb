"""The embeddings of a run: `names`, one `frame` for each, found by `frames`; `query`, `retrieval`, `refined`.

`__init__.pyi` lists the names; each loads its module at its first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
