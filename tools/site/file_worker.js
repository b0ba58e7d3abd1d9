/* Pages that are opened from a folder: browsers start no worker there, so the script that searches runs in a frame. */
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = this.onerror = this.onmessageerror = null;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = data => {
        const event = new MessageEvent("message", { data: structuredClone(data) });
        this.onmessage?.(event);
        this.dispatchEvent(event);
      };
      const script = inside.document.createElement("script");
      script.src = new URL(url, location);
      script.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach(data => this.postMessage(data));
      };
      script.onerror = event => this.onerror?.(event);
      inside.document.body.append(script);
    }

    postMessage(data) {
      const inside = this.frame.contentWindow;
      // A worker gets a copy, as the script changes what it gets.
      const copy = structuredClone(data);
      if (this.waiting) this.waiting.push(copy);
      else setTimeout(() => inside.dispatchEvent(new inside.MessageEvent("message", { data: copy })));
    }

    terminate() {
      this.frame.remove();
    }
  };
