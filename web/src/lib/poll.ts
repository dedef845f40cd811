// Looks now, and again `ms` after each look has ended, while the page can be seen. `look` handles its own errors; false from it ends the
// looking. Returns what ends it, as effects want it.
export function poll(ms: number, look: () => Promise<boolean | void>): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const run = async (): Promise<void> => {
    if (!document.hidden && (await look()) === false) return;
    if (!isOver) timer = setTimeout(() => void run(), ms);
  };
  void run();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
