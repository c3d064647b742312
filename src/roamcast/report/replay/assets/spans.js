// What lasts a while: contacts, tree links, subscriptions, contents of caches. Knows which of them hold at a time.
// Going from one time to another costs as many steps as there are changes between them, forwards or backwards.

class Spans {
  constructor(columns, name) {
    this.one = columns.get(`${name}.one`);
    this.other = columns.get(`${name}.other`);
    this.from = columns.get(`${name}.from`);
    this.until = columns.get(`${name}.until`);
    const count = this.one.length;
    // A change is the number of a span, +1, negative where it ends. At one time, ends come first.
    const changes = new Int32Array(2 * count);
    for (let i = 0; i < count; i++) {
      changes[2 * i] = i + 1;
      changes[2 * i + 1] = -(i + 1);
    }
    const time = (change) => (change > 0 ? this.from[change - 1] : this.until[-change - 1]);
    this._changes = changes.sort((a, b) => time(a) - time(b) || a - b);
    this._times = Float64Array.from(this._changes, time);
    this._next = 0;
    this._place = new Int32Array(count).fill(-1); // of a span in the list of those that hold
    this._list = new Int32Array(count);
    this.count = 0;
  }

  seek(time) {
    while (this._next < this._times.length && this._times[this._next] <= time) this._apply(this._changes[this._next++]);
    while (this._next > 0 && this._times[this._next - 1] > time) this._apply(-this._changes[--this._next]);
  }

  // The numbers of the spans that hold now are at(0) to at(count - 1), in no order.
  at(i) {
    return this._list[i];
  }

  // The others of all that hold now and have this one.
  of(one) {
    const found = [];
    for (let i = 0; i < this.count; i++) {
      const span = this._list[i];
      if (this.one[span] === one) found.push(this.other[span]);
    }
    return found.sort((a, b) => a - b);
  }

  _apply(change) {
    const span = Math.abs(change) - 1;
    if (change > 0 && this._place[span] < 0) {
      this._place[span] = this.count;
      this._list[this.count++] = span;
    } else if (change < 0 && this._place[span] >= 0) {
      const last = this._list[--this.count];
      this._list[this._place[span]] = last;
      this._place[last] = this._place[span];
      this._place[span] = -1;
    }
  }
}
