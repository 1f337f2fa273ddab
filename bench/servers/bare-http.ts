import { serveAndAnnounce } from './announce.js'

/* What Node alone can do: reads the body, keeps nothing, answers a constant. */

const [, , answer = ''] = process.argv
const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(answer) }

serveAndAnnounce((req, res) => {
  req.resume()
  req.on('end', () => res.writeHead(200, headers).end(answer))
})
