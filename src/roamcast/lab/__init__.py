"""The laboratory: real nodes on one machine, an emulated air between them, and a scenario driving them."""
