"""Riemannian manifolds and conjugate gradient, in torch on any device."""

from udml_core.numerics.geometry.conjugate_gradient import ConjugateGradient, Evaluation
from udml_core.numerics.geometry.euclidean import Euclidean
from udml_core.numerics.geometry.grassmann import Grassmann
from udml_core.numerics.geometry.manifold import Manifold, Point
from udml_core.numerics.geometry.product import Product
from udml_core.numerics.geometry.stiefel import Stiefel

__all__ = ["ConjugateGradient", "Euclidean", "Evaluation", "Grassmann", "Manifold", "Point", "Product", "Stiefel"]
