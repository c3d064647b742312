"""Studies made with roamcast: users of the tool, not parts of it."""
