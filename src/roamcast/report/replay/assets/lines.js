// Straight lines of one width, of which many look alike. Without a graphics card, lines of one pixel are drawn in half the
// time as one path; wider ones one at a time, since a path of many that cross takes ten times as long.

const TOGETHER = 256;

class Lines {
  constructor(context, width) {
    this._context = context;
    this._most = width * devicePixelRatio > 1 ? 1 : TOGETHER;
    this._count = 0;
    context.lineWidth = width;
  }

  look(colour, alpha) {
    if (colour === this._colour && alpha === this._alpha) return;
    this.end();
    this._context.strokeStyle = this._colour = colour;
    this._context.globalAlpha = this._alpha = alpha;
  }

  add(x, y, tx, ty) {
    if (!this._count++) this._context.beginPath();
    this._context.moveTo(x, y);
    this._context.lineTo(tx, ty);
    if (this._count >= this._most) this.end();
  }

  end() {
    if (this._count) this._context.stroke();
    this._count = 0;
  }
}
