"""The REST API of Magnum (container-infra), microversions 1.1 to 1.14."""
