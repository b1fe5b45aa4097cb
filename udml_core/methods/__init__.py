"""The methods: a class with a `card` in a file of this folder is a method, and no list names it.

`__init__.pyi` lists the other names; each loads its module at its first use. A class is imported from its own module,
`from udml_core.methods.rpml import RPML`; the shorter `from udml_core.methods import RPML` works as well.
"""

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name in __all__:
        return _load(name)
    from udml_core.methods.registry import find_class

    return find_class(name)
