// Small pictures that are drawn again and again: numbers of nodes, and crosses. Without a graphics card, a picture at
// whole pixels takes a fraction of the time of writing or of strokes.

const ARM = 4; // of a cross, pixels
const BESIDE = 14; // pixels from a node to the cross of what it lost

class Sprites {
  constructor(palette) {
    this._palette = palette;
    this._made = new Map();
  }

  label(node) {
    return this._sprite(`label ${node}`, 7 * `${node}`.length + 6, 16, (context, across, down) => {
      context.font = "11px system-ui, sans-serif";
      context.textAlign = "center";
      context.textBaseline = "bottom";
      context.lineJoin = "round";
      context.lineWidth = 3;
      context.strokeStyle = this._palette.ground;
      context.fillStyle = this._palette.nodeText;
      context.strokeText(node, across / 2, down - 1);
      context.fillText(node, across / 2, down - 1);
    });
  }

  // Before the node at (tx, ty), on the side that the frame came from, so that several can be told apart.
  cross(context, outcome, x, y, tx, ty) {
    const size = 2 * ARM + 4, far = BESIDE / (Math.hypot(tx - x, ty - y) || 1);
    const sprite = this._sprite(`cross ${outcome}`, size, size, (own) => {
      own.lineWidth = 2;
      own.strokeStyle = this._palette.outcomes[outcome];
      own.translate(size / 2, size / 2);
      for (const down of [-ARM, ARM]) {
        own.moveTo(-ARM, -down);
        own.lineTo(ARM, down);
      }
      own.stroke();
    });
    const left = Math.round(tx - far * (tx - x) - size / 2), top = Math.round(ty - far * (ty - y) - size / 2);
    context.drawImage(sprite, left, top, size, size);
  }

  // Made when it is first wanted, and again when the colours or the pixels have changed.
  _sprite(name, across, down, draw) {
    const look = `${this._palette.nodeText} ${devicePixelRatio}`;
    if (this._look !== look) [this._look, this._made] = [look, new Map()];
    const known = this._made.get(name);
    if (known) return known;
    const sprite = document.createElement("canvas"), context = sprite.getContext("2d");
    sprite.width = Math.ceil(across * devicePixelRatio);
    sprite.height = Math.ceil(down * devicePixelRatio);
    context.scale(devicePixelRatio, devicePixelRatio);
    draw(context, across, down);
    this._made.set(name, Object.assign(sprite, { across, down }));
    return sprite;
  }
}
