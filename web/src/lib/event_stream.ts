// Server-sent events over fetch: unlike EventSource it shows statuses, sends bodies and headers, and does not give up at 503.
import { ask } from "./api";
import { EventParser, type ServerEvent } from "./sse";

// Calls `take` for each event until the stream ends, and `heard` whenever something has arrived, comments too. Throws ApiError, or
// AbortError once `signal` is aborted.
export async function readEvents(response: Response, take: (event: ServerEvent) => void, heard?: () => void): Promise<void> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard?.();
    for (const event of parser.push(value)) take(event);
  }
}

export async function streamEvents(method: string, path: string, body: unknown, signal: AbortSignal,
    take: (event: ServerEvent) => void, headers?: Record<string, string>): Promise<void> {
  await readEvents(await ask(method, path, body, { signal, headers }), take);
}
