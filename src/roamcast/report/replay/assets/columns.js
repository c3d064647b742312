// The facts of the run: typed arrays out of one compressed block (pack.py has the format).

const ARRAYS = { Float64Array, Float32Array, Int32Array, Uint16Array, Uint8Array };

class Columns {
  constructor(buffer) {
    const length = Number(new DataView(buffer).getBigUint64(0, true));
    const contents = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    this.about = contents.about;
    this._buffer = buffer;
    this._base = 8 + length;
    this._places = contents.columns;
  }

  get(name) {
    const [type, offset, length] = this._places[name];
    return new ARRAYS[type](this._buffer, this._base + offset, length);
  }

  static async read(element) {
    const text = atob(element.textContent);
    element.remove(); // the text is as large as all the rest
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
    const unzipped = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Columns(await new Response(unzipped).arrayBuffer());
  }
}
