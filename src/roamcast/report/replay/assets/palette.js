// The colours of the style sheet, for the canvas; read again when the scheme turns light or dark.

class Palette {
  constructor(changed) {
    this._read();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this._read();
      changed();
    });
  }

  _read() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    for (const name of [
      "ground", "plain", "text", "muted", "line", "node", "node-text", "contact", "tree", "relay", "building",
      "subscriber", "publisher", "accent", "missed", "interest", "relevance", "packets",
    ]) this[name.replace(/-(.)/, (_, letter) => letter.toUpperCase())] = colour(name);
    this.roles = {};
    for (const role of ["data", "control", "beacon", "ack", "background"]) this.roles[role] = colour(role);
    this.outcomes = ["received", "collision", "half-duplex", "random-loss"].map(colour);
  }
}
