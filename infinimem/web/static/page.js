// What a page does beyond links and forms. All of it works without.
"use strict";

const drawer = document.getElementById("drawer");

// A fact opens beside the page that names it.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-fact]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  htmx.ajax("GET", link.href, { target: "#drawn", select: "#fact", swap: "innerHTML" }).then(() => {
    drawer.querySelector("a").href = link.href;
    if (!drawer.open) drawer.showModal();
    drawer.scrollTop = 0;
  });
});
drawer.addEventListener("click", (event) => {
  if (event.target === drawer) drawer.close(); // beside it
});

// What changes elsewhere appears, but not under somebody's hands.
setInterval(async () => {
  const main = document.querySelector("main[data-version]");
  if (!main || document.visibilityState !== "visible") return;
  if (document.activeElement?.matches("main textarea, main select")) return;
  const fields = [...document.querySelectorAll("main input, main textarea")];
  if (fields.some((field) => field.value !== field.defaultValue)) return;
  const version = await fetch("/version").then((answer) => answer.ok && answer.text(), () => "");
  if (!version || version === main.dataset.version) return;
  htmx.ajax("GET", location.pathname + location.search, { target: "#main", select: "#main", swap: "outerMorph" });
}, 1000);

// Review by keyboard: next, previous, approve, reject; then the one that comes after it.
const items = () => [...document.querySelectorAll(".item")];
const focus = (at) => items()[Math.max(0, Math.min(at, items().length - 1))]?.focus();
const left = sessionStorage.getItem("left");
sessionStorage.removeItem("left");
if (left !== null) focus(Number(left));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || drawer.open) return;
  if (event.target.matches("input, textarea, select")) return;
  const at = items().indexOf(document.activeElement.closest(".item"));
  if (event.key === "j") focus(at + 1);
  else if (event.key === "k") focus(at - 1);
  else if (at >= 0) {
    const button = items()[at].querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (!button) return;
    sessionStorage.setItem("left", at);
    button.click();
  }
});

// The slider says which day it stands on.
document.addEventListener("input", (event) => {
  if (!event.target.matches("[type=range]")) return;
  const day = document.querySelector(`#${event.target.getAttribute("list")} [value="${event.target.value}"]`);
  event.target.closest("label").querySelector("output").value = day.label;
});
