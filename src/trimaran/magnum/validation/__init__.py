"""Checks of what a request asks for, beyond the shape of its body.

Each function raises the error that upstream would tell, in upstream's order.
Spec section 2.
"""
