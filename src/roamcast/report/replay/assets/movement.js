// Where every node is: exactly on its leg, straight and at constant speed.

class Movement {
  constructor(columns, nodes) {
    this._first = columns.get("leg.first");
    for (const name of ["start", "end", "x0", "y0", "x1", "y1", "indoor"]) this[`_${name}`] = columns.get(`leg.${name}`);
    this._range = columns.get("range");
    this._indoorRange = columns.about.indoor_range;
    this._leg = this._first.slice(0, nodes); // the leg that each node is on
    this.x = new Float64Array(nodes);
    this.y = new Float64Array(nodes);
    this.range = new Float64Array(nodes);
  }

  seek(time) {
    for (let node = 0; node < this.x.length; node++) {
      const leg = this._legAt(node, time), span = this._end[leg] - this._start[leg];
      const part = span > 0 ? clamp((time - this._start[leg]) / span, 0, 1) : 0;
      this.x[node] = this._x0[leg] + (this._x1[leg] - this._x0[leg]) * part;
      this.y[node] = this._y0[leg] + (this._y1[leg] - this._y0[leg]) * part;
      this.range[node] = this._indoor[leg] && this._indoorRange ? this._indoorRange : this._range[node];
    }
  }

  _legAt(node, time) {
    const first = this._first[node], end = this._first[node + 1];
    let leg = this._leg[node];
    if (time < this._start[leg] || time >= this._end[leg]) {
      leg = leg + 1 < end && time >= this._start[leg + 1] && time < this._end[leg + 1]
        ? leg + 1
        : clamp(upperBound(this._start, time, first, end) - 1, first, end - 1);
      this._leg[node] = leg;
    }
    return leg;
  }
}
