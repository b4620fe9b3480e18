/** Works on all items, at most `limit` at a time; the first failure stops it. */
export async function concurrently<Item>(
  limit: number,
  items: Iterable<Item>,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  let hasFailed = false;
  const worker = async () => {
    for (let next = iterator.next(); next.done !== true && !hasFailed; next = iterator.next()) {
      try {
        await work(next.value);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: limit }, worker));
}
