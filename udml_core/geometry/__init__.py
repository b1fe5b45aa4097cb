"""Riemannian manifolds and conjugate gradient, in torch on any device."""

from udml_core.geometry.conjugate_gradient import ConjugateGradient, Evaluation
from udml_core.geometry.euclidean import Euclidean
from udml_core.geometry.grassmann import Grassmann
from udml_core.geometry.manifold import Manifold, Point
from udml_core.geometry.product import Product
from udml_core.geometry.stiefel import Stiefel

__all__ = ["ConjugateGradient", "Euclidean", "Evaluation", "Grassmann", "Manifold", "Point", "Product", "Stiefel"]
