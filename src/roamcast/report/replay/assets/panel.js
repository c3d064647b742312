// Building the panel beside the picture: elements from text, never from markup.

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value !== false && value !== null) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function table(head, rows) {
  const cells = (kind, row) => row.map((cell) => element(kind, {}, cell));
  return element(
    "table",
    {},
    element("thead", {}, element("tr", {}, ...cells("th", head))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells("td", row)))),
  );
}

function facts(pairs) {
  return element("dl", {}, ...pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

// The tabs: one section is shown at a time.
class Panel {
  constructor(root) {
    this._tabs = [...root.querySelectorAll("[role=tab]")];
    for (const tab of this._tabs) tab.addEventListener("click", () => this.show(tab.dataset.shows));
    this.show("run");
  }

  show(name) {
    this.shown = name;
    for (const tab of this._tabs) {
      const chosen = tab.dataset.shows === name;
      tab.setAttribute("aria-selected", chosen);
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !chosen;
    }
  }
}
