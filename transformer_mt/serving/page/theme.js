// Before the first paint: the colours that were chosen last. Without a choice, those of the system.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    // storage is forbidden: the system decides
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
