// Asks the simulator in its worker. A question that changes faster than it is answered is asked once, with its latest values, when the worker is
// free.
import CoreWorker from "./worker?worker&inline";

export interface Answer {
  [key: string]: any; // eslint-disable-line @typescript-eslint/no-explicit-any
}

export class Core {
  private worker = new CoreWorker();
  private next = 1;
  private waiting = new Map<number, (answer: Answer) => void>();
  private busy = new Map<string, { question: object; done: (answer: Answer) => void } | null>();

  constructor() {
    this.worker.onmessage = (event: MessageEvent<{ id: number; answer: string; ms: number }>) => {
      const { id, answer, ms } = event.data;
      const done = this.waiting.get(id);
      this.waiting.delete(id);
      done?.({ ...(JSON.parse(answer) as Answer), ms });
    };
  }

  ask(question: object): Promise<Answer> {
    return new Promise((resolve) => {
      const id = this.next++;
      this.waiting.set(id, resolve);
      this.worker.postMessage({ id, question: JSON.stringify(question) });
    });
  }

  // The newest question of a channel is answered; older ones that were not sent yet are dropped.
  latest(channel: string, question: object, done: (answer: Answer) => void): void {
    if (this.busy.has(channel)) {
      this.busy.set(channel, { question, done });
      return;
    }
    this.busy.set(channel, null);
    void this.ask(question).then((answer) => {
      const then = this.busy.get(channel);
      this.busy.delete(channel);
      if (then) this.latest(channel, then.question, then.done);
      else done(answer);
    });
  }
}

let quick: Core | undefined;
let long: Core | undefined;
let server: Core | undefined;
// Latency estimates and single rounds on one worker, long runs on another, servers on a third: a slider never waits for a simulation.
export const quickCore = (): Core => (quick ??= new Core());
export const rounds = (): Core => (long ??= new Core());
export const serving = (): Core => (server ??= new Core());
