"""Runs: `request`, stored `spec`, `folder`, `selection` of epochs, `finding`, `search`, `examples`.

`__init__.pyi` lists the names; each loads its module at its first use, because the command line needs few of them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
