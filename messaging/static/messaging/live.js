/* What makes an open page follow the server: sockets say what happened, states are applied as
   facts, and whatever has text is fetched as the fragment that the page was rendered from. */
(function () {
  "use strict";
  var C = window.CoWork;
  var DELAYS = [1, 2, 4, 8, 15], LOOK = 150, SETTLE = 2000;
  var STEPS = { accepted: 0, queued: 1, started: 2, delivered: 3, failed: 3, quarantined: 3 };
  function $$(s, el) { return Array.prototype.slice.call((el || document).querySelectorAll(s)); }
  function $(s, el) { return (el || document).querySelector(s); }
  function word(key) { var w = $('[data-word="' + key + '"]', $("#words").content); return w ? w.textContent : key; }
  function parse(html) { return new DOMParser().parseFromString(html, "text/html"); }
  function part(url) {
    return fetch(url, { headers: { "HX-Request": "true" }, credentials: "same-origin" }).then(function (answer) {
      if (!answer.ok) throw new Error("answered " + answer.status);
      return answer.text();
    });
  }
  // Keys that come within a moment are asked for together.
  function gather(work) {
    var keys = new Set(), timer = null, busy = false;
    function run() {
      timer = null;
      if (busy) { timer = setTimeout(run, LOOK); return; }
      var now = Array.from(keys);
      keys.clear(); busy = true;
      work(now).catch(function () {
        now.forEach(function (k) { keys.add(k); });
        if (!timer) timer = setTimeout(run, SETTLE);
      }).finally(function () { busy = false; });
    }
    return function (key) { keys.add(key); if (!timer) timer = setTimeout(run, LOOK); };
  }

  // ---------- sockets
  var sockets = [], since = null, bannerTimer = null, wasLive = false;
  function socket(address, take) {
    var one = { open: false, tries: 0, ws: null, timer: null, gone: false };
    function connect() {
      clearTimeout(one.timer);
      if (one.gone) return;
      if (one.tries) C.conn("catchup", word("catchup"));
      var ws = one.ws = new WebSocket((location.protocol === "https:" ? "wss://" : "ws://") + location.host + address());
      ws.onmessage = function (ev) {
        var frame = JSON.parse(ev.data);
        if (!one.open) { one.open = true; one.tries = 0; standing(); }
        take(frame, one);
      };
      // The workspace's socket says nothing until there is news, so being open is enough for it.
      ws.onopen = function () { if (one.quiet) setTimeout(function () { if (one.ws === ws && ws.readyState === 1) { one.open = true; one.tries = 0; standing(); if (one.back) one.back(); } }, LOOK); };
      ws.onclose = function (ev) {
        if (one.ws !== ws) return;
        one.open = false;
        if (ev.code >= 4400 && ev.code < 4500) { one.gone = true; standing(); return; }
        var delay = DELAYS[Math.min(one.tries, DELAYS.length - 1)] * (0.8 + Math.random() * 0.4);
        one.tries += 1;
        one.at = Date.now() + delay * 1000;
        one.timer = setTimeout(connect, delay * 1000);
        standing();
      };
    }
    one.connect = connect;
    sockets.push(one);
    return one;
  }
  function standing() {
    var live = sockets.length && sockets.every(function (s) { return s.open; });
    if (live) {
      if (since && wasLive) C.say("Connected again");
      wasLive = true; since = null;
      clearTimeout(bannerTimer); bannerTimer = null;
      $$("#main > .banner[data-state=offline]").forEach(function (b) { b.remove(); });
      C.conn("live", word("live"));
    } else if (sockets.some(function (s) { return s.gone; })) {
      C.conn("still", word("still"));
    } else if (wasLive) {
      since = since || new Date();
      C.conn("offline", word("offline") + " " + since.toTimeString().slice(0, 5));
      if (!bannerTimer) bannerTimer = setTimeout(offline, SETTLE);
    }
    if (wasLive) sends(!!live);
  }
  // Sending needs a connection; writing does not. Nothing is sent later by itself.
  function sends(online) {
    $$(".composer .send").forEach(function (b) {
      var label = $(".send-l > span", b);
      if (!b.dataset.label) b.dataset.label = label.textContent;
      b.disabled = !online;
      label.textContent = online ? b.dataset.label : word("connect");
    });
  }
  function offline() {
    var main = $("#main"), bar = $("#main > .bar");
    if (!since || !bar || $(".banner", main)) return;
    C.say("Connection lost");
    var b = $("#banner-offline").content.firstElementChild.cloneNode(true);
    $("[data-since]", b).textContent = since.toTimeString().slice(0, 8);
    $("[data-again]", b).addEventListener("click", function () { sockets.forEach(function (s) { if (!s.open) s.connect(); }); });
    bar.after(b);
    (function tick() {
      if (!b.isConnected) return;
      var next = Math.min.apply(null, sockets.filter(function (s) { return !s.open; }).map(function (s) { return s.at || Date.now(); }));
      $("[data-in]", b).textContent = Math.max(0, Math.round((next - Date.now()) / 1000));
      setTimeout(tick, 1000);
    })();
  }
  function reload() {
    var bar = $("#main > .bar");
    if (bar && !$(".banner[data-state=reload]")) bar.after($("#banner-reload").content.firstElementChild.cloneNode(true));
  }

  // ---------- one conversation
  function conversation(main) {
    var after = +main.dataset.after, fetched = after, task = main.dataset.task;
    var look = gather(function (keys) {
      var ids = keys.filter(function (k) { return k.indexOf("-") > 0; });
      return part(main.dataset.live + "?after=" + fetched + "&receipts=" + ids.join(",")).then(function (html) { merge(parse(html)); });
    });
    function merge(answer) {
      var root = $("#changes", answer);
      if (!root) return;
      if (root.dataset.lastSeq) fetched = Math.max(fetched, +root.dataset.lastSeq);
      lines($('[data-block="log"]', root));
      ["collab-head", "collab-attention", "busy-now", "composer-now"].forEach(function (id) { patch($("#" + id), $('[data-block="' + id + '"]', root)); });
      patch($("#readiness"), $('[data-block="readiness"]', root));
      patch($("#rail-readiness"), $('[data-block="readiness"]', root));
      var collab = $("#collab");
      if (collab) collab.hidden = !$("#collab-head").firstElementChild;
    }
    function lines(found) {
      var log = $("#log"), follow = C.atEnd(), grown = 0, own = false;
      $$(":scope > li", found).forEach(function (li) {
        var known = document.getElementById(li.id);
        if (known) { refresh(known, li); place(log, known, li.hasAttribute("data-admitted")); return; }
        li = document.importNode(li, true);
        if (li.classList.contains("msg")) li.classList.add("is-new");
        place(log, li, li.hasAttribute("data-admitted"));
        window.htmx && htmx.process(li);
        C.clip(li);
        if (li.dataset.name) grown += 1;
        if (li.hasAttribute("data-own")) own = true;
        else if (li.dataset.name) C.say("New message from " + li.dataset.name);
      });
      if (grown) { var empty = $("#empty"); if (empty) empty.remove(); }
      C.grown(grown, follow || own);
    }
    // Taken in before those that only wait; nothing else ever moves.
    function place(log, li, waits) {
      var first = $(":scope > li[data-admitted]", log);
      if (waits) { if (!li.parentNode) log.append(li); return; }
      li.removeAttribute("data-admitted");
      first = $(":scope > li[data-admitted]", log);
      if (li.parentNode !== log) log.insertBefore(li, first);
      else if (first && first.compareDocumentPosition(li) & Node.DOCUMENT_POSITION_FOLLOWING && !li.contains(document.activeElement)) log.insertBefore(li, first);
    }
    function refresh(known, li) {
      $$("[data-trace]", li).forEach(function (trace) {
        var now = $('[data-trace="' + trace.dataset.trace + '"]', known), stuck = $('[data-stuck]', known);
        if (!now) return;
        receipt($("[data-receipt]", trace).dataset, $(".rcpt-label", trace).textContent, $(".rcpt-extra", trace).textContent);
        patch($(".kv", now), $(".kv", trace));
        patch(stuck, $("[data-stuck]", li));
      });
    }
    function receipt(told, label, extra) {
      $$('[data-receipt="' + told.receipt + '"]').forEach(function (el) {
        var older = +el.dataset.attempt > +told.attempt || (el.dataset.attempt === told.attempt && STEPS[el.dataset.state] > STEPS[told.state] && told.state !== "queued");
        if (older) return;
        el.dataset.state = told.state; el.dataset.attempt = told.attempt;
        text($(".rcpt-label", el), label); text($(".rcpt-extra", el), extra);
      });
    }
    // Facts: the state of a receipt is in the event itself.
    function fact(event) {
      var told = event.payload;
      if (event.type === "message_status" && told.from !== told.to) {
        var extra = told.attempt > 1 ? word("attempt") + " " + told.attempt : new Date(event.created_at).toTimeString().slice(0, 5);
        receipt({ receipt: told.receipt_id, state: told.to, attempt: String(told.attempt) }, word(told.to), extra);
        var li = document.getElementById("msg_" + told.receipt_id);
        if (li && li.hasAttribute("data-own") && STEPS[told.to] === 3) C.say("Message " + word(told.to).toLowerCase());
      }
      if (event.type === "tool_activity") return;
      look(told.receipt_id || "panels");
    }
    var ws = socket(function () { return "/ws/tasks/" + task + "/?after=" + after; }, function (frame) {
      if (frame.type === "event") {
        if (frame.event.seq <= after) return; // once
        after = frame.event.seq;
        fact(frame.event);
      } else if (frame.type === "resync_required") reload();
    });
    document.addEventListener("cowork:sent", function (ev) { merge(ev.detail.parts); });
    var details = $(".collab-d"), inside = $("#collab-details");
    if (details) details.addEventListener("toggle", function () {
      if (!details.open) return;
      part(inside.dataset.from).then(function (html) { inside.replaceChildren.apply(inside, parse(html).body.childNodes); }).catch(function () { /* the link within stays */ });
    });
    older(main);
    ws.connect();
  }
  // Earlier lines come in above, and the first visible one stays where it is.
  function older(main) {
    main.addEventListener("htmx:afterRequest", function (ev) {
      if (!ev.target.closest("#older") || !ev.detail.successful) return;
      var answer = $("#older-answer", parse(ev.detail.xhr.responseText)), log = $("#log"), box = $("#scroll");
      var anchor = log.firstElementChild, top = anchor.getBoundingClientRect().top, link = $("#older", answer);
      $$(":scope > ol > li", answer).forEach(function (li) {
        var known = document.getElementById(li.id);
        if (known && known.classList.contains("day")) known.remove();
        else if (known) return;
        log.insertBefore(document.importNode(li, true), anchor.isConnected ? anchor : log.firstElementChild);
      });
      C.clip(log);
      if (link) { $("#older").replaceWith(document.importNode(link, true)); window.htmx && htmx.process($("#older")); } else $("#older").remove();
      if (anchor.isConnected) (getComputedStyle(box).overflowY === "auto" ? box : document.scrollingElement).scrollTop += anchor.getBoundingClientRect().top - top;
    });
  }

  // ---------- the roster
  function roster(where) {
    var look = gather(function (ids) {
      var compact = where.hasAttribute("data-compact") ? "&compact" : "";
      return part(where.dataset.roster + "?rows=" + ids.join(",") + compact).then(function (html) {
        $$("li.bot", parse(html)).forEach(function (row) {
          var known = $('[data-rows] > [data-bot="' + CSS.escape(row.dataset.bot) + '"]', where);
          if (!known) return;
          if (row.dataset.task) known.dataset.task = row.dataset.task;
          known.classList.toggle("is-off", row.classList.contains("is-off"));
          [".bot-prev", ".bot-ready", ".bot-last", ".bot-time"].forEach(function (cell) { patch($(cell, known), $(cell, row)); });
        });
        order(where);
      });
    });
    return look;
  }
  // Order waits for the person.
  function order(where) {
    var place = $("[data-banner-order]", where);
    if (!place || $("[data-order]", place)) return;
    var times = $$("[data-rows] > li", where).map(function (li) { var t = $(".bot-time time", li); return t ? Date.parse(t.getAttribute("datetime")) : 0; });
    if (times.every(function (t, i) { return !i || times[i - 1] >= t; })) return;
    var b = $("#banner-order").content.firstElementChild.cloneNode(true);
    b.dataset.order = "";
    b.addEventListener("click", function () { location.reload(); });
    place.prepend(b);
  }
  function workspace(slug) {
    var looks = $$("[data-roster]").map(roster), behind = false;
    var ws = socket(function () { return "/ws/workspaces/" + slug + "/"; }, function (frame) {
      if (frame.type === "changed") looks.forEach(function (look) { look(frame.task_id); });
    });
    ws.quiet = true;
    // There is no cursor: after a gap all rows are looked at again.
    ws.back = function () {
      if (behind) $$("[data-rows] > [data-task]").forEach(function (li) { looks.forEach(function (look) { look(li.dataset.task); }); });
      behind = true;
    };
    ws.connect();
  }

  // ---------- patches
  function text(el, value) { if (el && el.textContent !== value) el.textContent = value; }
  // What holds the focus is left alone until it is left.
  function patch(known, fresh) {
    if (!known || !fresh || known.innerHTML === fresh.innerHTML) return;
    if (known.contains(document.activeElement)) {
      known.addEventListener("focusout", function () { setTimeout(function () { patch(known, fresh); }, 0); }, { once: true });
      return;
    }
    known.replaceChildren.apply(known, Array.prototype.map.call(fresh.childNodes, function (n) { return document.importNode(n, true); }));
    if (window.htmx) htmx.process(known);
  }
  // Relative times go on.
  function age() {
    $$("time[data-rel]").forEach(function (t) {
      var s = (Date.now() - Date.parse(t.getAttribute("datetime"))) / 1000;
      if (s < 604800) text(t, s < 60 ? "now" : s < 3600 ? Math.floor(s / 60) + " min" : s < 86400 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " d");
    });
  }

  // For tests: as if the network had gone.
  C.drop = function () { sockets.forEach(function (s) { if (s.ws) s.ws.close(); }); };

  C.ready(function () {
    var main = $("main[data-task]"), slug = document.body.dataset.workspace;
    setInterval(age, 30000);
    if (!window.WebSocket) return;
    if (main) conversation(main);
    if (slug) workspace(slug);
  });
})();
