import { connect, createServer, type Socket } from 'node:net'
import { announce } from './announce.js'

/*
 * A way to a port of this machine that takes so many milliseconds in each direction, as if the server were far away:
 * node distance.ts PORT MS. It is short until the process gets SIGUSR2.
 */

const [port = 0, longMs = 0] = process.argv.slice(2).map(Number)
let delayMs = 0
process.on('SIGUSR2', () => {
  delayMs = longMs
})

/** Passes on what comes, in order, each piece so long after it came. */
function pass(from: Socket, to: Socket): void {
  const late: { readonly at: number; readonly data: Buffer }[] = []
  let timer: NodeJS.Timeout | undefined
  const send = (): void => {
    timer = undefined
    const now = performance.now()
    to.cork()
    for (let next = late[0]; next !== undefined && next.at <= now; next = late[0]) {
      to.write(next.data)
      late.shift()
    }
    to.uncork()
    const [next] = late
    if (next !== undefined) timer = setTimeout(send, next.at - now)
  }
  from.on('data', (data) => {
    late.push({ at: performance.now() + delayMs, data })
    if (timer === undefined) timer = setTimeout(send, delayMs)
  })
  from.on('close', () => setTimeout(() => to.destroy(), delayMs))
  from.on('error', () => {})
}

const server = createServer({ noDelay: true }, (near) => {
  const far = connect({ port, host: '127.0.0.1', noDelay: true })
  pass(near, far)
  pass(far, near)
})

announce(server)
