// The time of the run, and how fast it goes: speed is seconds of the run per second of the watcher.

const SLOWEST = 0.01, FASTEST = 1000;

class Clock {
  constructor(end) {
    this.end = end;
    this.time = 0;
    this.speed = 1;
    this.playing = false;
    this._last = null;
  }

  toggle() {
    if (!this.playing && this.time >= this.end) this.time = 0;
    this.playing = !this.playing;
    this._last = null;
  }

  seek(time) {
    this.time = clamp(time, 0, this.end);
  }

  setSpeed(speed) {
    this.speed = clamp(speed, SLOWEST, FASTEST);
  }

  // To be called once for each picture; milliseconds of the watcher.
  tick(now) {
    if (!this.playing) return;
    // A tab that was hidden goes on where it stopped.
    if (this._last !== null) this.seek(this.time + this.speed * Math.min(0.1, (now - this._last) / 1000));
    this._last = now;
    if (this.time >= this.end) this.playing = false;
  }
}
