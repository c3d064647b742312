// Small pictures that are drawn again and again: numbers of nodes, and crosses. Without a graphics card, a picture at
// whole pixels takes a fraction of the time of writing or of strokes.

const ARM = 4; // of a cross, pixels
const BESIDE = 14; // pixels from a node to the cross of what it lost

class Sprites {
  constructor(palette) {
    this._palette = palette;
  }

  // To be called before each picture: all are made again when the colours or the pixels have changed.
  begin() {
    const look = `${this._palette.nodeText} ${devicePixelRatio}`;
    if (this._look !== look) Object.assign(this, { _look: look, _labels: [], _crosses: [] });
  }

  // The number of a node with its centre at the point (x, y).
  label(context, node, x, y) {
    const label = (this._labels[node] ??= this._label(`${node}`));
    context.drawImage(label.image, Math.round(x - label.across / 2), Math.round(y - label.down / 2), label.across, label.down);
  }

  // Before the node at (tx, ty), on the side that the frame came from, so that several can be told apart.
  cross(context, outcome, x, y, tx, ty) {
    const { image, across } = (this._crosses[outcome] ??= this._cross(this._palette.outcomes[outcome]));
    const far = BESIDE / (Math.hypot(tx - x, ty - y) || 1);
    const left = Math.round(tx - far * (tx - x) - across / 2), top = Math.round(ty - far * (ty - y) - across / 2);
    context.drawImage(image, left, top, across, across);
  }

  _label(text) {
    return sprite(7 * text.length + 6, 16, (context, across, down) => {
      context.font = "11px system-ui, sans-serif";
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.lineJoin = "round";
      context.lineWidth = 3;
      context.strokeStyle = this._palette.ground;
      context.fillStyle = this._palette.nodeText;
      context.strokeText(text, across / 2, down / 2);
      context.fillText(text, across / 2, down / 2);
    });
  }

  _cross(colour) {
    return sprite(2 * ARM + 4, 2 * ARM + 4, (context, across, down) => {
      context.lineWidth = 2;
      context.strokeStyle = colour;
      context.translate(across / 2, down / 2);
      for (const y of [-ARM, ARM]) {
        context.moveTo(-ARM, -y);
        context.lineTo(ARM, y);
      }
      context.stroke();
    });
  }
}

// A bitmap rather than a canvas: the browser looks after a canvas again at each drawing.
function sprite(across, down, draw) {
  const canvas = new OffscreenCanvas(Math.ceil(across * devicePixelRatio), Math.ceil(down * devicePixelRatio));
  const context = canvas.getContext("2d");
  context.scale(devicePixelRatio, devicePixelRatio);
  draw(context, across, down);
  return { image: canvas.transferToImageBitmap(), across, down };
}
