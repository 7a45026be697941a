"""What the product is compared with: the bare parts that it is made of."""
