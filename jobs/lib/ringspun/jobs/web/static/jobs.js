// Shows what is live: asks for a part of the page again every few seconds, as long as somebody looks. The page works without it.
(function () {
  "use strict";
  const part = document.querySelector("[data-live]");
  const box = document.getElementById("live");
  if (!part || !box) return;

  const SECONDS = 3;
  const SLOW_SECONDS = 15; // after a failure
  const MINUTES_MAX = 30; // without a key or a pointer that moves nobody is there
  const state = document.getElementById("live-state");
  let touched = Date.now();
  let timer = null;

  box.closest("[hidden]").hidden = false;
  ["keydown", "pointermove", "pointerdown"].forEach((name) => {
    document.addEventListener(name, () => { touched = Date.now(); }, { passive: true });
  });

  function plan(seconds) {
    clearTimeout(timer);
    timer = box.checked && !document.hidden ? setTimeout(ask, seconds * 1000) : null;
  }

  async function ask() {
    if (Date.now() - touched > MINUTES_MAX * 60000) {
      box.checked = false;
      state.textContent = "stopped, for nobody was here for " + MINUTES_MAX + " minutes";
      return;
    }
    // Who has reached something in there by keyboard would lose it.
    if (part.contains(document.activeElement)) return plan(SECONDS);
    try {
      const answer = await fetch(part.dataset.live, { headers: { accept: "text/html" }, redirect: "error" });
      if (!answer.ok) throw new Error(answer.status);
      part.innerHTML = await answer.text();
      state.textContent = "";
      plan(SECONDS);
    } catch (error) {
      state.textContent = "no answer; what is shown is old";
      plan(SLOW_SECONDS);
    }
  }

  box.addEventListener("change", () => { state.textContent = ""; plan(0); });
  document.addEventListener("visibilitychange", () => plan(0));
  plan(SECONDS);
})();

// Chooses all jobs of a page.
(function () {
  "use strict";
  const all = document.getElementById("choose-all");
  if (!all) return;

  all.closest("[hidden]").hidden = false;
  all.addEventListener("change", () => {
    document.querySelectorAll("input[name=key]").forEach((box) => { box.checked = all.checked; });
  });
})();
