"use strict";
// The slider, the theme, and paper. Every text comes from the data block as text; nothing here writes HTML.
(() => {
  const find = (id) => document.getElementById(id);
  const make = (name) => document.createElementNS("http://www.w3.org/2000/svg", name);

  const theme = find("theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const pressed = () => theme.setAttribute("aria-pressed", String(isDark()));
  theme.hidden = false;
  pressed();
  dark.addEventListener("change", pressed);
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    pressed();
  });

  // Paper has no place to click.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((details) => { details.open = true; });
  });
  window.addEventListener("afterprint", () => opened.forEach((details) => { details.open = false; }));

  const slider = find("budget");
  if (!slider) return;
  const data = JSON.parse(find("systems").textContent);
  const pictures = [...document.querySelectorAll("svg.frontier")];
  const places = pictures.map((picture) => [...picture.querySelectorAll(".system")]);

  const row = (index, name, share) => {
    const item = document.createElement("li");
    const swatch = document.createElement("span");
    swatch.className = `swatch stage-${index % data.colours}`;
    const label = document.createElement("span");
    label.className = "name";
    label.textContent = name;
    const number = document.createElement("span");
    number.className = "number";
    number.textContent = share;
    item.append(swatch, label, number);
    return item;
  };

  const piece = (index, start, width) => {
    const rect = make("rect");
    rect.setAttribute("class", `stage-${index % data.colours}`);
    rect.setAttribute("x", String(start));
    rect.setAttribute("width", String(width));
    rect.setAttribute("height", "10");
    return rect;
  };

  const show = (place) => {
    const system = data.systems[place];
    for (const name of ["cost", "score", "difference", "saving", "label"]) {
      const field = find(`at-${name}`);
      if (field) field.textContent = system.text[name];
    }
    find("at-reported").hidden = place !== data.chosen;
    find("reported").disabled = place === data.chosen;
    slider.setAttribute("aria-valuetext", system.text.spoken);
    find("at-shares").replaceChildren(
      ...system.names.map((name, index) => row(index, name, system.text.shares[index])),
    );
    let start = 0;
    find("at-bar").replaceChildren(...system.shares.map((share, index) => {
      const rect = piece(index, 100 * start, 100 * share);
      start += share;
      return rect;
    }));
    pictures.forEach((picture, index) => {
      const here = places[index][place];
      const ring = picture.querySelector(".here");
      for (const name of ["cx", "cy"]) ring.setAttribute(name, here.getAttribute(name));
    });
  };

  slider.value = String(data.chosen);
  show(data.chosen);
  find("controls").hidden = false;
  slider.addEventListener("input", () => show(Number(slider.value)));
  find("reported").addEventListener("click", () => {
    slider.value = String(data.chosen);
    show(data.chosen);
    slider.focus();
  });
  places.forEach((circles) => circles.forEach((circle, place) => {
    circle.addEventListener("click", () => {
      slider.value = String(place);
      show(place);
    });
  }));
})();
