NEEDS = "api fireworq prometheus retention routing schedules"
