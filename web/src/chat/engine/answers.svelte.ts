// All answers that this tab writes, whichever conversation is shown. A browser has six connections to a node for all tabs together
// (HTTP/1.1), so no more than STREAMS_MAX answers are read at once; others wait their turn.
import { RunningAnswer, type AnswerWorld } from "./running_answer.svelte";
import type { Message } from "./types";

const STREAMS_MAX = 4;

export class Answers {
  private all = $state.raw<ReadonlyMap<string, RunningAnswer>>(new Map());
  private waiting: RunningAnswer[] = [];
  private reading = 0;

  get(id: string): RunningAnswer | undefined { return this.all.get(id); }
  get list(): RunningAnswer[] { return [...this.all.values()]; }
  of(conversation: string): RunningAnswer[] { return this.list.filter((answer) => answer.message.conversation === conversation); }

  start(message: Message, world: AnswerWorld): RunningAnswer {
    const answer = new RunningAnswer(message, world);
    this.all = new Map(this.all).set(message.id, answer);
    this.waiting.push(answer);
    this.next();
    return answer;
  }

  private next(): void {
    while (this.reading < STREAMS_MAX) {
      const answer = this.waiting.shift();
      if (!answer) return;
      this.reading += 1;
      void this.run(answer).finally(() => {
        this.reading -= 1;
        this.next();
      });
    }
  }

  private async run(answer: RunningAnswer): Promise<void> {
    await answer.run();
    const all = new Map(this.all);
    all.delete(answer.id);
    this.all = all;
  }

  async stop(id: string): Promise<void> {
    const answer = this.all.get(id);
    await answer?.stop();
    if (!answer || !this.waiting.includes(answer)) return;
    this.waiting = this.waiting.filter((other) => other !== answer);
    await this.run(answer); // It ends at once, without a turn.
  }

  async stopAll(conversation: string): Promise<void> { await Promise.all(this.of(conversation).map((answer) => this.stop(answer.id))); }
}
