"""A spiking neural network learns chess by playing itself."""
