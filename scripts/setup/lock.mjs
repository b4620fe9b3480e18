import { connect, createServer } from "node:net";

/**
 * Runs `work` while no other set-up holds the lock of this name. The lock is an abstract socket: the kernel gives it to one
 * process and frees it when that process ends in any way, so there are no stale locks to clean up.
 * @template T
 * @param {string} name
 * @param {() => Promise<T>} work
 * @param {() => void} onWait called once when another process holds the lock
 * @returns {Promise<T>}
 */
export async function withLock(name, work, onWait) {
  const address = `\0sandpiper-setup-${name}`;
  let hasWaited = false;
  for (;;) {
    const release = await tryAcquire(address);
    if (release !== undefined) {
      try {
        return await work();
      } finally {
        release();
      }
    }
    if (!hasWaited) onWait();
    hasWaited = true;
    await untilReleased(address);
  }
}

/**
 * @param {string} address
 * @returns {Promise<(() => void) | undefined>}
 */
function tryAcquire(address) {
  return new Promise((resolve, reject) => {
    /** @type {Set<import("node:net").Socket>} */
    const waiters = new Set();
    const server = createServer((socket) => {
      socket.on("error", () => {});
      waiters.add(socket);
    });
    server.once("error", (/** @type {NodeJS.ErrnoException} */ error) => {
      if (error.code === "EADDRINUSE") resolve(undefined);
      else reject(error);
    });
    server.listen(address, () => {
      resolve(() => {
        server.close();
        for (const socket of waiters) socket.destroy();
      });
    });
  });
}

/**
 * @param {string} address
 * @returns {Promise<void>}
 */
function untilReleased(address) {
  return new Promise((resolve) => {
    const socket = connect(address);
    socket.on("error", () => {});
    // Without the pause, a holder that no longer accepts connections would be asked in a tight loop.
    socket.on("close", () => setTimeout(resolve, 50));
  });
}
