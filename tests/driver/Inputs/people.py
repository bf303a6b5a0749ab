"""people.py FILE: a table as strangers have them: quotes, cells without a value, words, a counter, a date that is nearly a key."""
import random
import sys

random.seed(2)
cities = ["Berlin", "Paris, FR", 'Rome "old"', ""]
worth = {"Berlin": 0, "Paris, FR": 2000, 'Rome "old"': -1000, "": 500}
with open(sys.argv[1], "w", encoding="utf-8-sig", newline="\r\n") as file:
    file.write('id,name,"age, years",city,income,children,price,class\n')
    for i in range(400):
        age, income, children = random.randint(18, 80), random.gauss(40000, 9000), random.choice([1, 2, 3])
        city = random.choice(cities)
        price = age * 100 + income / 10 + worth[city] + random.gauss(0, 300)
        quoted = city.replace('"', '""')
        shown = "" if random.random() < 0.05 else age
        grade = "high" if price > 9000 else "low"
        file.write(f'{i},"person {i}",{shown},"{quoted}",{income:.2f},{children},{price:.1f},{grade}\n')
