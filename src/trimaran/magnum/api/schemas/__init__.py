"""Bodies of requests and answers: their shapes, in upstream's order of fields."""
