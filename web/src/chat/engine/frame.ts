// Runs `show` at most once a frame, however often it is asked for. A hidden page has no frames: there it runs twice a second.
const HIDDEN_MS = 500;

export function oncePerFrame(show: () => void): () => void {
  let isAsked = false;
  const run = (): void => {
    isAsked = false;
    show();
  };
  return () => {
    if (isAsked) return;
    isAsked = true;
    if (document.hidden) setTimeout(run, HIDDEN_MS);
    else requestAnimationFrame(run);
  };
}
