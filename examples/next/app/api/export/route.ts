import { access, customerIdIn } from '../../../lib/access'

/** Only for customers with the feature `export`. */
export async function GET(request: Request): Promise<Response> {
  const customerId = customerIdIn(request.headers.get('cookie') ?? '')
  if (customerId === null) return Response.json({ error: 'Sign in first.' }, { status: 401 })
  const { active, reason } = await access.check(customerId, { feature: 'export' })
  if (reason === 'unavailable') return Response.json({ error: 'Try again in a moment.' }, { status: 503 })
  if (!active) return Response.json({ error: 'Your plan has no exports.' }, { status: 402 })
  return new Response('a,b\n1,2\n', { headers: { 'Content-Type': 'text/csv' } })
}
