// Puts text on the clipboard. A page that came over plain http from another machine has no navigator.clipboard, so a hidden field is
// selected and copied there; a refusal is an error with a sentence.
export async function copyText(text: string): Promise<void> {
  if (window.isSecureContext && navigator.clipboard) {
    try {
      return await navigator.clipboard.writeText(text);
    } catch {
      // The browser may refuse while the page is not focused; the field below needs no permission.
    }
  }
  copyByField(text);
}

function copyByField(text: string): void {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true; // no keyboard on a phone
  field.className = "hidden-text";
  field.setAttribute("aria-hidden", "true");
  // Inside an open dialog only its own elements can be selected.
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  field.setSelectionRange(0, text.length);
  const isCopied = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  if (!isCopied) throw new Error("The browser did not copy the text. Select it and press Ctrl-C.");
}
