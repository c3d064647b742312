"""One broker for networks of any density and speed: few transmissions where it is dense, carrying where it is not."""
