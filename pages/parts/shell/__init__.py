"""Parts that most pages need, such as the address, loaders and the run picker."""
