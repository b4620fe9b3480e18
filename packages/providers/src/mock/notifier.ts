/** Wakes all waiters when something changes. */
export class Notifier {
  #change = Promise.withResolvers<void>();

  wait(): Promise<void> {
    return this.#change.promise;
  }

  notify(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}
