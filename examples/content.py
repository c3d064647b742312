"""Events, filters and what can be known about them: a tour of `roamcast.content`."""

from roamcast.content.covering import covers, summarise
from roamcast.content.event import Event
from roamcast.content.index import FilterIndex
from roamcast.content.text import parse_filter
from roamcast.content.xml import event_from_xml
from roamcast.content.xpath import filter_from_xpath
from roamcast.errors import ContentError

# An event has a type and typed attributes; a filter is written as text.
evans = Event.of("CD", {"category": "jazz", "composer": "Evans", "price": 18.0})
wanted = parse_filter('type = "CD" and category = "jazz" and (price < 20 or composer ^= "Ev")')
print(f"{wanted}\n  matches {evans.attributes}: {wanted.matches(evans)}\n")

# The same from XML and XPath.
document = '<CD id="002"><category>jazz</category><composer>Davis</composer><price>10.00</price></CD>'
davis = event_from_xml(document)
bargain = filter_from_xpath('/CD[category="jazz" and price<"12"]')
print(f"{bargain}\n  matches {davis.attributes}: {bargain.matches(davis)}\n")

# A filter that covers another matches all that the other does. A broker's many filters become one of bounded size.
cheap, cheaper = parse_filter("price < 20"), parse_filter("price < 10 and stock > 0")
print(f"'{cheap}' covers '{cheaper}': {covers(cheap, cheaper)}; the other way: {covers(cheaper, cheap)}")
local = [parse_filter(f'category = "jazz" and price < {price}') for price in range(5, 50, 5)]
print(f"{len(local)} filters, summarised: {summarise(local, budget=60)}\n")

# One event against many filters.
index: FilterIndex[str] = FilterIndex()
for price in range(5, 50, 5):
    index.add(f"up to {price}", parse_filter(f'category = "jazz" and price < {price}'))
print(f"an event at 18.0 is wanted by: {index.match(evans)}\n")

# A mistake is shown where it is.
try:
    parse_filter('category = "jazz" and price < twenty')
except ContentError as problem:
    print(problem)
