/**
 * Where a thread's code is: beside the module that starts it. Threads run compiled files alone; for sources that are
 * run as they are, it is the one that was built from them.
 */
export function threadFile(startedBy: string, name: string): URL {
  const isSource = startedBy.endsWith('.ts')
  return new URL(`./${name}.js`, isSource ? startedBy.replace('/src/', '/dist/src/') : startedBy)
}
