// Which parts of the picture are taken, in squares of a few pixels: what is written must not cover anything.

const SQUARE = 4;

class Room {
  // To be called before each picture.
  begin(width, height) {
    this._across = Math.ceil(width / SQUARE) + 1;
    this._down = Math.ceil(height / SQUARE) + 1;
    const size = this._across * this._down;
    if (this._taken?.length === size) this._taken.fill(0);
    else this._taken = new Uint8Array(size);
  }

  // Takes a rectangle; false, and nothing is taken, if part of it is taken already.
  take(left, top, width, height, always = false) {
    const first = clamp(Math.floor(left / SQUARE), 0, this._across), last = clamp(Math.ceil((left + width) / SQUARE), 0, this._across);
    const upper = clamp(Math.floor(top / SQUARE), 0, this._down), lower = clamp(Math.ceil((top + height) / SQUARE), 0, this._down);
    if (!always) {
      for (let row = upper; row < lower; row++) {
        for (let at = first; at < last; at++) if (this._taken[row * this._across + at]) return false;
      }
    }
    for (let row = upper; row < lower; row++) this._taken.fill(1, row * this._across + first, row * this._across + last);
    return true;
  }
}
