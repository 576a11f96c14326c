// The way bytes come in: one request by fetch, or one WebSocket, for one life of the
// player. mpegts.js has loaders of its own; this one also counts, takes times, and
// keeps what the server says when it refuses.

const {BaseLoader, LoaderErrors, LoaderStatus} = window.mpegts;

// makeLoader returns a loader class for mpegts.js that reports to seen:
// {url, bytes, opened, lastData, answer: {status, text, retryAfter}, failed}. Times are
// those of performance.now(), and url is who answered, behind all redirects.
export function makeLoader(seen) {
  return class extends BaseLoader {
    constructor() {
      super("millrace-loader");
      this._needStash = false; // every byte goes on at once
      this.received = 0;
      this.stop = null;
    }

    open(source) {
      this._status = LoaderStatus.kConnecting;
      if (source.url.startsWith("ws")) this.openSocket(source.url);
      else this.openFetch(source.url);
    }

    abort() {
      this._status = LoaderStatus.kComplete;
      if (this.stop) this.stop();
      this.stop = null;
    }

    destroy() {
      this.abort();
      super.destroy();
    }

    async openFetch(url) {
      const abort = new AbortController();
      let stopped = false;
      this.stop = () => { stopped = true; abort.abort(); };
      try {
        const res = await fetch(url, {signal: abort.signal, cache: "no-store", credentials: "same-origin"});
        if (stopped) return;
        if (!res.ok) {
          const text = (await res.text().catch(() => "")).trim();
          if (stopped) return;
          seen.answer = {status: res.status, text, retryAfter: Number(res.headers.get("Retry-After")) || 0};
          this.fail(LoaderErrors.HTTP_STATUS_CODE_INVALID, res.status, res.statusText);
          return;
        }
        this.opened(res.url);
        const reader = res.body.getReader();
        for (;;) {
          const {done, value} = await reader.read();
          if (stopped) return;
          if (done) break;
          this.data(value.byteOffset === 0 && value.byteLength === value.buffer.byteLength
            ? value.buffer : value.slice().buffer);
        }
        this.complete();
      } catch (e) {
        if (!stopped) this.fail(LoaderErrors.EXCEPTION, -1, e.message);
      }
    }

    openSocket(url) {
      const socket = new WebSocket(url);
      let stopped = false;
      let open = false;
      socket.binaryType = "arraybuffer";
      this.stop = () => { stopped = true; socket.close(); };
      socket.onopen = () => { open = true; this.opened(url.replace(/^ws/, "http")); };
      socket.onmessage = (e) => { if (!stopped) this.data(e.data); };
      socket.onclose = async () => {
        if (stopped) return;
        if (open) { this.complete(); return; }
        // A browser does not tell why a WebSocket was refused. HTTP does.
        try {
          const res = await fetch(url.replace(/^ws/, "http"), {method: "HEAD", cache: "no-store"});
          if (!res.ok) seen.answer = {status: res.status, text: "", retryAfter: Number(res.headers.get("Retry-After")) || 0};
        } catch { /* the server is not there at all */ }
        if (stopped) return;
        this.fail(seen.answer ? LoaderErrors.HTTP_STATUS_CODE_INVALID : LoaderErrors.EXCEPTION,
          seen.answer ? seen.answer.status : -1, "WebSocket was not opened");
      };
    }

    opened(url) {
      this._status = LoaderStatus.kBuffering;
      seen.url = url;
      seen.opened = performance.now();
    }

    data(buffer) {
      seen.bytes += buffer.byteLength;
      seen.lastData = performance.now();
      const start = this.received;
      this.received += buffer.byteLength;
      if (this._onDataArrival) this._onDataArrival(buffer, start, this.received);
    }

    complete() {
      this._status = LoaderStatus.kComplete;
      if (this._onComplete) this._onComplete(0, this.received - 1);
    }

    fail(type, code, msg) {
      this._status = LoaderStatus.kError;
      seen.failed = msg;
      if (this._onError) this._onError(type, {code, msg});
    }
  };
}
