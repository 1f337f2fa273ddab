import type { ChildProcess, Serializable } from 'node:child_process'

/** Resolves with the child's next message; rejects if it ends instead. */
export function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: unknown): void => {
      child.off('exit', onExit)
      resolve(message as T)
    }
    const onExit = (code: number | null): void => {
      child.off('message', onMessage)
      reject(new Error(`${child.spawnargs.slice(1).join(' ')} ended with ${code ?? 'a signal'}`))
    }
    child.once('message', onMessage)
    child.once('exit', onExit)
  })
}

/** Sends a message, and resolves with the one that follows. */
export function ask<T>(child: ChildProcess, message: Serializable): Promise<T> {
  const answer = nextMessage<T>(child)
  child.send(message)
  return answer
}

/** Asks it to stop, and resolves once it has ended. */
export async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
}

/** No child outlives this process, however it ends by itself. */
export function tieToThisProcess(child: ChildProcess): void {
  const kill = (): void => void child.kill('SIGKILL')
  // Before the folder goes in which it writes.
  process.prependOnceListener('exit', kill)
  child.once('exit', () => process.off('exit', kill))
}
