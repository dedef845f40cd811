// Requests to the node that served this page. Errors are of one kind, with the node's own sentence.

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, sentence: string, readonly retryAfter?: number) {
    super(sentence);
  }
}

export interface Session {
  control: boolean; // may load, unload, download, see PINs
  key: boolean; // is known by a key
  keys_needed: boolean;
  demo?: boolean;
}

// The node's sentence from a response that is not 2xx, in the shape of OpenAI's errors.
async function errorOf(response: Response): Promise<ApiError> {
  let sentence = `The node answered ${response.status}.`;
  let code = "";
  try {
    const body = await response.json();
    const error = body.error ?? body;
    if (typeof error.message === "string") sentence = error.message;
    if (typeof error === "string") sentence = error;
    if (typeof error.code === "string") code = error.code;
  } catch {
    // The body is no JSON: the status says enough.
  }
  const after = Number(response.headers.get("retry-after"));
  return new ApiError(response.status, code, sentence, after > 0 ? after : undefined);
}

// `signal` ends it; without one it ends after `timeout` ms. Throws ApiError; status 0: the node was not reached.
export async function ask(method: string, path: string, body?: unknown, options: { signal?: AbortSignal; timeout?: number;
    headers?: Record<string, string> } = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method, credentials: "same-origin", cache: "no-store",
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...options.headers },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: options.signal ?? AbortSignal.timeout(options.timeout ?? 30_000),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The node does not answer. Is lockstep still running on it?");
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

export async function json<T>(method: string, path: string, body?: unknown,
    options: Parameters<typeof ask>[3] = {}): Promise<T> {
  return (await (await ask(method, path, body, options)).json()) as T;
}

// Runs `work` with a signal that is aborted with `signal`, or after `ms`: then ApiError with `sentence` is thrown, else what `work` throws.
export async function within<T>(ms: number, signal: AbortSignal, sentence: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const deadline = new AbortController();
  const end = (): void => deadline.abort();
  const timer = setTimeout(end, ms);
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  try {
    return await work(deadline.signal);
  } catch (error) {
    if (deadline.signal.aborted && !signal.aborted) throw new ApiError(0, "late", sentence);
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
  }
}
