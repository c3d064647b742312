"use strict";
// Reading a point: hover, tap, or focus with Tab and move with the arrow keys. Hiding a curve: its name in the legend.
// Another y axis: the switch above a figure. Everything it shows is in the page already; without it the page lacks
// comfort, not content.

const tip = document.getElementById("tip");

function show(point) {
  tip.textContent = point.getAttribute("aria-label").split("; ").join("\n");
  const command = point.closest("figure")?.querySelector(".again code");
  if (command && point.dataset.run) {
    command.textContent = `roamcast run ${command.dataset.out}/${point.dataset.run} --replay`;
    command.parentElement.hidden = false;
  }
  tip.hidden = false;
  const mark = point.querySelector(".mark").getBoundingClientRect();
  const edge = document.documentElement.clientWidth - tip.offsetWidth - 8;
  const left = Math.max(8, Math.min(mark.left + mark.width / 2 - tip.offsetWidth / 2, edge));
  const above = mark.top - tip.offsetHeight - 10;
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${(above > 4 ? above : mark.bottom + 10) + window.scrollY}px`;
}

function hide() {
  tip.hidden = true;
}

function visiblePoints(curve) {
  return curve.classList.contains("off") ? [] : [...curve.querySelectorAll(".point")];
}

// One stop of the Tab key a drawing: left and right go along a curve, up and down to the next one.
function moved(chart, point, key) {
  const curves = [...chart.querySelectorAll("[data-curve]")].map(visiblePoints).filter((points) => points.length);
  const row = curves.findIndex((points) => points.includes(point));
  const column = curves[row].indexOf(point);
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[key];
  const target = curves[(row + step[0] + curves.length) % curves.length];
  return target[Math.max(0, Math.min(column + step[1], target.length - 1))];
}

function makeStop(chart, chosen) {
  for (const point of chart.querySelectorAll(".point")) point.setAttribute("tabindex", point === chosen ? "0" : "-1");
}

function firstVisible(chart) {
  return [...chart.querySelectorAll("[data-curve]")].flatMap(visiblePoints)[0];
}

function makeReadable(chart) {
  makeStop(chart, firstVisible(chart));
  for (const point of chart.querySelectorAll(".point")) {
    point.addEventListener("pointerenter", () => show(point));
    point.addEventListener("pointerleave", hide);
    point.addEventListener("focus", () => { makeStop(chart, point); show(point); });
    point.addEventListener("blur", hide);
  }
  chart.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    if (!event.key.startsWith("Arrow") || !event.target.classList.contains("point")) return;
    event.preventDefault();
    moved(chart, event.target, event.key).focus();
  });
}

// Exactly one button of a group is pressed.
function press(button, group) {
  for (const other of group) other.setAttribute("aria-pressed", String(other === button));
}

for (const figure of document.querySelectorAll("figure")) {
  const charts = [...figure.querySelectorAll(".chart")];
  charts.forEach(makeReadable);
  for (const button of figure.querySelectorAll("[data-toggles]")) {
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      for (const chart of charts) {
        for (const curve of chart.querySelectorAll(`[data-curve="${button.dataset.toggles}"]`)) {
          curve.classList.toggle("off", !shown);
        }
        makeStop(chart, firstVisible(chart));
      }
    });
  }
  const choices = [...figure.querySelectorAll("[data-shows]")];
  for (const button of choices) {
    button.addEventListener("click", () => {
      press(button, choices);
      hide();
      for (const view of figure.querySelectorAll("[data-view]")) view.hidden = view.dataset.view !== button.dataset.shows;
    });
  }
}

let opened = [];
window.addEventListener("beforeprint", () => {
  hide();
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const details of opened) details.open = true;
});
window.addEventListener("afterprint", () => {
  for (const details of opened) details.open = false;
});
