// Server-sent events read from text that arrives in arbitrary pieces (HTML Living Standard, 9.2.6).

export interface ServerEvent {
  event: string; // "message" if the stream names none
  data: string;
  id: string; // the last id that the stream gave, "" before the first
}

const EVENT_LENGTH_MAX = 4 << 20; // characters; a longer event is an error of the stream

export class EventParser {
  private rest = "";
  private data: string[] = [];
  private length = 0;
  private name = "";
  private id = "";

  // The events that `piece` completes. Throws RangeError for an event beyond EVENT_LENGTH_MAX.
  push(piece: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    const text = this.rest + piece;
    // A CR at the end may be half of a line end, so it waits for the next piece.
    const lines = text.split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    if (this.rest.length > EVENT_LENGTH_MAX) throw new RangeError("an event of the stream is too long");
    for (const line of lines) this.take(line, events);
    return events;
  }

  private take(line: string, events: ServerEvent[]): void {
    if (line === "") return this.finish(events);
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "event") this.name = value;
    if (field === "id" && !value.includes("\0")) this.id = value;
    if (field !== "data") return;
    this.length += value.length;
    if (this.length > EVENT_LENGTH_MAX) throw new RangeError("an event of the stream is too long");
    this.data.push(value);
  }

  private finish(events: ServerEvent[]): void {
    if (this.data.length > 0) events.push({ event: this.name || "message", data: this.data.join("\n"), id: this.id });
    this.data = [];
    this.length = 0;
    this.name = "";
  }
}
