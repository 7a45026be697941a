/* CoWork page behaviour. Everything here improves a page that already works
   without it: links stay links, forms stay forms. No framework, no inline code. */
(function () {
  "use strict";
  var root = document.documentElement;
  var store = {
    get: function (k) { try { return localStorage.getItem(k); } catch (e) { return null; } },
    set: function (k, v) { try { v ? localStorage.setItem(k, v) : localStorage.removeItem(k); } catch (e) { /* private mode */ } }
  };
  function cookie(name, value) {
    var secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = name + "=" + encodeURIComponent(value) + "; path=/; samesite=lax; max-age=" + (value ? 31536000 : 0) + secure;
  }
  // The server writes times in this zone and data-theme from the cookie, so nothing flashes.
  cookie("zone", Intl.DateTimeFormat().resolvedOptions().timeZone || "");

  function ready(fn) { document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", fn) : fn(); }
  function $$(s, el) { return Array.prototype.slice.call((el || document).querySelectorAll(s)); }
  function $(s, el) { return (el || document).querySelector(s); }
  function typing(el) { return el && (/^(INPUT|TEXTAREA|SELECT)$/.test(el.tagName) || el.isContentEditable); }

  // One polite region for the page. Messages within 1.2 s are joined into one sentence.
  var said = [], timer;
  function say(text) {
    said.push(text);
    clearTimeout(timer);
    timer = setTimeout(function () {
      var box = $("#announce");
      if (box) box.textContent = said.length > 2 ? said.length + " updates. " + said[said.length - 1] : said.join(". ");
      said = [];
    }, 1200);
  }

  // Drafts: one per person and recipient, written on each keystroke, cleared only by a 2xx of its own send.
  function drafts() {
    $$("form[data-draft]").forEach(function (form) {
      var box = $("textarea", form), note = $("[data-draft-note]", form), key = "draft:" + form.dataset.draft, sent = null, mode = "";
      // The server's text is what was refused just now; it is newer than what is stored.
      if (!box.value && store.get(key)) box.value = store.get(key);
      function show() { if (note) note.hidden = !box.value; }
      show();
      box.addEventListener("input", function () { store.set(key, box.value); show(); });
      form.addEventListener("submit", function (ev) {
        if (sent !== null || !box.value.trim()) { ev.preventDefault(); ev.stopImmediatePropagation(); box.focus(); }
        mode = ev.submitter ? ev.submitter.value : "";
        if (!form.hasAttribute("hx-post")) try { sessionStorage.setItem("sent", JSON.stringify({ key: key, text: box.value })); } catch (e) { /* private mode */ }
      }, true);
      // Whichever button or key it was: those outside the form count as well.
      form.addEventListener("htmx:configRequest", function (ev) { if (mode) ev.detail.parameters.delivery_mode = mode; });
      form.addEventListener("htmx:beforeRequest", function () {
        sent = box.value;
        $$("button", form).forEach(function (b) { b.disabled = true; });
      });
      form.addEventListener("htmx:afterRequest", function (ev) {
        var was = sent, refused = $("[data-refused]", form.parentNode), answer = ev.detail.xhr.responseText || "";
        sent = null;
        $$("button", form).forEach(function (b) { b.disabled = false; });
        var parts = new DOMParser().parseFromString(answer, "text/html");
        var fresh = $("[data-fresh-id]", parts);
        if (fresh) form.elements.message_id.value = fresh.dataset.freshId;
        if (ev.detail.successful) {
          if (refused) refused.textContent = "";
          if (box.value === was) { box.value = ""; store.set(key, ""); show(); } // else something was typed meanwhile: keep it
          form.dispatchEvent(new CustomEvent("cowork:sent", { bubbles: true, detail: { parts: parts } }));
          box.focus({ preventScroll: true });
          return;
        }
        // Not accepted: the text stays, and why stands above it.
        var why = $("[data-refusal]", parts) || $("#refusal-unknown").content.cloneNode(true);
        if (refused) refused.replaceChildren(why);
        say((refused && refused.textContent.trim().split("\n")[0]) || "");
      });
      box.addEventListener("keydown", function (ev) {
        if (ev.key === "Escape") { box.blur(); return; }
        if (ev.key !== "Enter" || !(ev.ctrlKey || ev.metaKey)) return;
        ev.preventDefault();
        form.requestSubmit($('[data-send="' + (ev.shiftKey ? "queue" : "start") + '"]', form));
      });
    });
  }
  // A form that went without HTMX: the server leads an accepted message to its own address.
  function sentBefore() {
    var was = null;
    try { was = JSON.parse(sessionStorage.getItem("sent")); sessionStorage.removeItem("sent"); } catch (e) { /* private mode */ }
    if (was && /^#msg_/.test(location.hash) && store.get(was.key) === was.text) store.set(was.key, "");
  }
  function clock() { return new Date().toTimeString().slice(0, 8); }

  // Transcript: follow only a reader who is at the end; otherwise count.
  function transcript() {
    var box = $("#scroll"), log = $("#log"), jump = $("#jump");
    if (!box || !log || !jump) return;
    function scroller() { return getComputedStyle(box).overflowY === "auto" ? box : document.scrollingElement; }
    function atEnd() { var s = scroller(); return s.scrollHeight - s.scrollTop - s.clientHeight < 48; }
    function toEnd() { var s = scroller(); s.scrollTop = s.scrollHeight; }
    function onScroll() { if (atEnd()) { missed = 0; jump.hidden = true; } }
    var missed = 0;
    if (!location.hash) toEnd();
    jump.addEventListener("click", function () { missed = 0; jump.hidden = true; toEnd(); box.focus({ preventScroll: true }); });
    box.addEventListener("scroll", onScroll, { passive: true });
    document.addEventListener("scroll", onScroll, { passive: true });
    api.atEnd = atEnd;
    // After a change of the transcript: follow, or count what came.
    api.grown = function (count, follow) {
      if (follow) { toEnd(); return; }
      if (!count) return;
      missed += count; jump.hidden = false;
      $("span", jump).textContent = missed + (missed > 1 ? " new messages" : " new message");
    };
  }

  // Long texts are clipped only where a script can open them again.
  function clip(where) {
    $$("[data-clip]", where).forEach(function (c) {
      var b = $("[data-unclip]", c.parentNode);
      if (!b || c.classList.contains("is-open")) return;
      c.classList.add("clip"); b.hidden = false;
    });
  }

  function dialogs() {
    $$("[data-dialog]").forEach(function (a) {
      a.addEventListener("click", function (ev) {
        var d = document.getElementById(a.dataset.dialog);
        if (d && d.showModal) { ev.preventDefault(); d.showModal(); }
      });
    });
    document.addEventListener("click", function (ev) {
      $$("details.menu[open]").forEach(function (m) { if (!m.contains(ev.target)) m.open = false; });
      var c = ev.target.closest("[data-copy]");
      if (c && navigator.clipboard) navigator.clipboard.writeText(c.dataset.copy === "here" ? location.href : c.dataset.copy).then(function () { say("Copied"); }, function () {});
      var x = ev.target.closest("[data-close]");
      if (x) { ev.preventDefault(); x.closest("dialog").close(); }
      var u = ev.target.closest("[data-unclip]");
      if (u && u.tagName === "BUTTON") { $("[data-clip]", u.parentNode).classList.add("is-open"); u.remove(); }
    });
    $$("[data-scripts]").forEach(function (el) { el.hidden = false; });
  }

  function themes() {
    var theme = root.dataset.theme || "system";
    $$('input[name="theme"]').forEach(function (r) {
      r.checked = r.value === theme;
      r.addEventListener("change", function () {
        theme = r.value;
        cookie("theme", theme === "system" ? "" : theme);
        if (theme === "system") delete root.dataset.theme; else root.dataset.theme = theme;
      });
    });
  }

  // Single keys work outside text fields only and can be turned off (WCAG 2.1.4).
  function keys() {
    var sw = $("#keys-on"), lead = "";
    if (sw) {
      sw.checked = store.get("keys") !== "off";
      sw.addEventListener("change", function () { store.set("keys", sw.checked ? "" : "off"); });
    }
    function rows() { return $$("[data-row]").filter(function (r) { return r.offsetParent; }); }
    function target(row) { return $("a.bot-link, a.row-link, summary, a, button", row) || row; }
    function move(d, test) {
      var list = rows(), at = list.findIndex(function (r) { return r.contains(document.activeElement); });
      for (var n = 1; n <= list.length; n++) {
        var i = at < 0 && d > 0 ? n - 1 : at + d * n;
        if (i < 0 || i >= list.length) return;
        if (!test || test(list[i])) { var t = target(list[i]); if (t === list[i]) t.tabIndex = -1; t.focus(); return; }
      }
    }
    document.addEventListener("keydown", function (ev) {
      if (store.get("keys") === "off" || typing(document.activeElement) || ev.ctrlKey || ev.metaKey || ev.altKey || $("dialog[open]")) return;
      var k = ev.key, done = true;
      if (lead === "g") {
        lead = "";
        var to = $('[data-go="' + CSS.escape(k) + '"]');
        if (to) location.href = to.href;
        return;
      }
      if (k === "g") lead = "g";
      else if (k === "j") move(1);
      else if (k === "k") move(-1);
      else if (k === "n") move(1, function (r) { return r.classList.contains("is-unread") || $('[data-tone="you"],[data-tone="stop"],[data-state="failed"],[data-state="quarantined"]', r); });
      else if (k === "e") { var d = document.activeElement.closest("[data-row]"); d = d && $("details", d); if (d) d.open = !d.open; }
      else if (k === "/") { var s = $('.search input'); if (s) s.focus(); }
      else if (k === "r") { var c = $(".composer textarea"); if (c) c.focus(); }
      else if (k === ".") { var cd = $(".collab-d"); if (cd) cd.open = !cd.open; }
      else if (k === "?") { var h = $("#keys"); if (h) h.showModal(); }
      else done = false;
      if (done) ev.preventDefault();
      if (k !== "g") lead = "";
    });
  }

  var api = window.CoWork = { say: say, clock: clock, clip: clip, ready: ready };
  // Called when the socket opens, drops, or replays. The server renders "Not live", which stays true without a socket.
  api.conn = function (state, text) {
    var c = $("#conn");
    if (!c || c.dataset.state === state && $(".conn-text", c).textContent === text) return;
    c.dataset.state = state;
    $(".conn-text", c).textContent = text;
    $("use", c).setAttribute("href", { live: "#g-work", offline: "#g-off", catchup: "#g-wait", still: "#g-ready" }[state]);
  };
  ready(function () { themes(); sentBefore(); drafts(); clip(document); transcript(); dialogs(); keys(); });
})();
