NEEDS = "alerts api retention routing schedules"
