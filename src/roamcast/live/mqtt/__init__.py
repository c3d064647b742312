"""MQTT: a node as a server of MQTT 5 and 3.1.1, and a bridge to a broker elsewhere."""
