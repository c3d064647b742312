// Which part of the area is seen: the point in the middle, and pixels per metre. North is up.

class Camera {
  constructor(area) {
    this._area = area;
    this.width = 1;
    this.height = 1;
    this.follow = -1;
    this.fit();
  }

  resize(width, height) {
    const fitted = this._fitted;
    this.width = width;
    this.height = height;
    if (fitted) this.fit();
  }

  fit() {
    const [width, height] = this._area;
    this.x = width / 2;
    this.y = height / 2;
    this.scale = 0.94 * Math.min(this.width / width, this.height / height);
    this.follow = -1;
    this._fitted = true;
  }

  screenX(x) {
    return this.width / 2 + (x - this.x) * this.scale;
  }

  screenY(y) {
    return this.height / 2 - (y - this.y) * this.scale;
  }

  // Whether a point of the picture, or something around it of that many pixels, is in sight.
  sees(px, py, around) {
    return px > -around && py > -around && px < this.width + around && py < this.height + around;
  }

  // Keeps the place under the pointer where it is.
  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const x = this.x + (px - this.width / 2) / this.scale, y = this.y - (py - this.height / 2) / this.scale;
    this.scale = clamp(this.scale * factor, 1e-4, 1e4);
    if (this.follow < 0) {
      this.x = x - (px - this.width / 2) / this.scale;
      this.y = y + (py - this.height / 2) / this.scale;
    }
    this._fitted = false;
  }

  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y += dy / this.scale;
    this.follow = -1;
    this._fitted = false;
  }

  keepUp(movement) {
    if (this.follow < 0) return;
    this.x = movement.x[this.follow];
    this.y = movement.y[this.follow];
    this._fitted = false;
  }
}
